"""Orders in, invoices out."""
