/** The host, in a component: the import that the contract declares. */
export * from 'wasmspawner:policy/host@0.1.0';
