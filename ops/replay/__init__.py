"""`replay`: what a stream gave up on, handed to its function again."""
