"""Reader of databases of Nsight Systems."""
