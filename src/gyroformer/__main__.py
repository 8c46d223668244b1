"""``python -m gyroformer``, the form that ``torchrun -m`` needs."""

from gyroformer.cli import main

if __name__ == "__main__":
    main()
