"""The commands `campaign` and `import`."""
