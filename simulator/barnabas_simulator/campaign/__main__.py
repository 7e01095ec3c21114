"""See `cli.py`."""

from barnabas_simulator.campaign.cli import main

if __name__ == "__main__":
    main()
