"""KL, advantages, losses, controllers and guards: pure functions. The page to read first."""
