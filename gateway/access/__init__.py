"""Who may connect (login, with the password file), and who may publish and subscribe what (rights, access list)."""
