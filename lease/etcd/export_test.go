package etcd

// Decode is what Get reads records with.
var Decode = decode
