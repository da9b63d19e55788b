"""HTTP API: accepts messages, and returns their statuses. Only the API's own function imports this
package."""
