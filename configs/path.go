package configs

import (
	"regexp"
	"strconv"
	"strings"
)

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// keyPath is the path of a key below path; a key that would be misread is quoted: models[0].providers["gpu.1"].
func keyPath(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func indexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// parentPath is the path of what holds path; empty for a key of the top level.
func parentPath(path string) string {
	if strings.HasSuffix(path, `"]`) {
		return path[:max(strings.LastIndex(path, `["`), 0)]
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
