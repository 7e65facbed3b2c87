"""The results of an analysis as sentences, frames and a page."""
