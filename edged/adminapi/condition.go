package adminapi

// Condition says how a candidate is, as the end of a sentence that begins with its name; several: with the names of more
// than one. The reasons are those of Candidate. Needed says what would have to happen.
func Condition(reason string, several bool) string {
	is, has, lacks := "is ", "has ", "lacks "
	if several {
		is, has, lacks = "are ", "have ", "lack "
	}
	switch reason {
	case "":
		return is + "free"
	case "disabled", "degraded", "full", "offline":
		return is + reason
	case "long_full":
		return has + "no slot left for long requests"
	case "pending":
		return is + "connecting"
	case "recovering":
		return has + "not come back yet after the start"
	case "draining":
		return is + "being drained"
	case "excluded":
		return "refused this request before"
	case "too_small":
		return is + "too small for it"
	case "incapable":
		return lacks + "something that it needs"
	case "detached":
		return "can't be given to it while its client is gone"
	case "principal_limit":
		return is + "not for its principal now, which has as many slots as it may"
	case "removed":
		return is + "no longer configured"
	}
	return "can't be had (" + reason + ")"
}
