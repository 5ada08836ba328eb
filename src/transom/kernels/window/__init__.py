"""Windows: from the rows of a stream to rows with lifetimes. One file per way of ending."""
