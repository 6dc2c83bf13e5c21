package configs

import (
	"strconv"
	"strings"
)

// keyPath is the path of a key below path; a key that would be misread is quoted: models[0].providers["gpu.1"].
func keyPath(path, key string) string {
	switch {
	case !plainKey(key):
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// plainKey is not a pattern, as it is asked for every key of a file.
func plainKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	})
}

func indexPath(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// parentPath is the path of what holds path; empty for a key of the top level.
func parentPath(path string) string {
	if strings.HasSuffix(path, `"]`) {
		return path[:max(strings.LastIndex(path, `["`), 0)]
	}
	return path[:max(strings.LastIndexAny(path, ".["), 0)]
}
