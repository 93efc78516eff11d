"""The command line as `python -m gfucb`."""

from gfucb.cli.main import main

if __name__ == "__main__":
    main()
