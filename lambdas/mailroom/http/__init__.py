"""HTTP: requests to checked URLs, what their responses prove, and the parsing of requests to Mailroom's own
APIs."""
