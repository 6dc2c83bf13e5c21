package cli

import "runtime"

// Environment is what a command sees: the names that every program needs, and the named extra ones. look finds a value.
// Nothing else of noded's environment is passed on, least of all its token. The extra ones' values are secrets: they are
// returned so that no message shows them.
func Environment(look func(name string) (string, bool), extra []string) (env, secrets, missing []string) {
	named := map[string]bool{}
	for _, name := range extra {
		named[name] = true
		value, ok := look(name)
		if !ok {
			missing = append(missing, name)
			continue
		}
		env = append(env, name+"="+value)
		secrets = append(secrets, value)
	}
	for _, name := range basicNames() {
		if value, ok := look(name); ok && !named[name] {
			env = append(env, name+"="+value)
		}
	}
	return env, secrets, missing
}

// basicNames are the variables that say where a program finds itself, and hold no secret.
func basicNames() []string {
	if runtime.GOOS == "windows" {
		return []string{
			"PATH", "PATHEXT", "SystemRoot", "SystemDrive", "windir", "TEMP", "TMP", "USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH",
			"APPDATA", "LOCALAPPDATA", "ProgramData", "ProgramFiles", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
		}
	}
	return []string{"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}
}
