"""Finding messages without their ids: by whom they are for, and the newest first."""
