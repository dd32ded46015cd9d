"""Recurrent networks: encoders, and decoders without attention, with Bahdanau's and with Luong's."""
