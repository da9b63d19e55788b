from mailroom_stacks.app.main import main

main()
