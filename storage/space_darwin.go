package storage

import "golang.org/x/sys/unix"

func spaceOf(dir string) (Space, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Space{}, false
	}
	return Space{Free: int64(st.Bavail) * int64(st.Bsize), Size: int64(st.Blocks) * int64(st.Bsize)}, true
}
