package storage

import "os"

const childEnv = "IOP_STORAGE_TEST_CHILD"

func childDir() string { return os.Getenv(childEnv) }

func child() {}
