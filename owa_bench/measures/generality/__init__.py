"""Generality analysis: does an agent solve everything up to a difficulty?"""
