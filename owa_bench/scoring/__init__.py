"""From traces to axes, index, gates and levels; imports no acting code."""
