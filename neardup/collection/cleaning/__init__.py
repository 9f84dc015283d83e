"""Query-biased clean-up of a collection (Pi et al., sections II and III)."""
