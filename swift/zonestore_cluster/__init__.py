"""A Swift cluster of zoned drives on one machine: each node has a network address, an /etc/swift and processes of its own."""
