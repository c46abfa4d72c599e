"""Where policies act: data, demonstrations and environments."""
