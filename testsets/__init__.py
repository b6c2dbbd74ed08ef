"""What is measured on: test sets, their recordings and their reference segments."""
