"""Several daemons, the proxies of deploy/proxies before them, and clients that count their answers."""
