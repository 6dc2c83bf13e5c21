package storage

import "golang.org/x/sys/unix"

func spaceOf(dir string) (Space, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Space{}, false
	}
	block := st.Frsize
	if block <= 0 {
		block = st.Bsize
	}
	return Space{Free: int64(st.Bavail) * block, Size: int64(st.Blocks) * block}, true
}
