package cli

import "os/user"

// operator is the name that changes are logged under: IOP_OPERATOR, or that of the user of this system. The edge takes it as
// a claim.
func (g *globals) operator() string {
	if name := g.lookup("IOP_OPERATOR"); name != "" {
		return name
	}
	u, err := user.Current()
	if err != nil {
		return "" // a system without users
	}
	return u.Username
}
