package storage

// Space is the disk that a data directory is on, in bytes. Free is what this process may still write.
type Space struct{ Free, Size int64 }

// Space tells how much room there is, false if the system does not say.
func (s *Store) Space() (Space, bool) { return spaceOf(s.dir.path) }
