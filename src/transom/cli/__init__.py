"""The command line. Nothing here is imported by anybody else."""
