"""Applications: the command line, the learning service, the cluster mode, and reports."""
