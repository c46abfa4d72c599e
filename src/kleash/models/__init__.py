"""Selector, language model, engines that sample, answerers and encoders."""
