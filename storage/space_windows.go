package storage

import "golang.org/x/sys/windows"

func spaceOf(dir string) (Space, bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return Space{}, false
	}
	var free, size uint64
	if err := windows.GetDiskFreeSpaceEx(path, &free, &size, nil); err != nil {
		return Space{}, false
	}
	return Space{Free: int64(free), Size: int64(size)}, true
}
