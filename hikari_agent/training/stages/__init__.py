"""The stages that make shards out of speech: each reads a corpus (`hikari_agent.training.corpus`) and writes another."""
