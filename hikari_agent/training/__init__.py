"""Training a Hikari model: how parallel text with word times becomes what each decoder row is to say."""
