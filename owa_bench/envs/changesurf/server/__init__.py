"""Server of a site: state, pages, request handling."""
