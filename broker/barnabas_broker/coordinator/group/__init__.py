"""The group coordinator: who is a member of a group, what each reads, and what is committed."""
