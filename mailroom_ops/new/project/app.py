from mailroom_stacks.app import main

main()
