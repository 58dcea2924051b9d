"""What every other part of the library builds on: checked rows, states, errors, locks and threads."""
