"""Laboratory: inner attempts of revised subjects, played by a process of their own."""
