package cli

import (
	"slices"
	"strings"
	"testing"

	"iop/edged/adminapi"
)

// jsonShapes are what commands print with -o json, by path. It is what docs/CLI.md says of them, and what their golden outputs are
// held to.
func jsonShapes() map[string]any {
	return map[string]any{
		"status":                               new(adminapi.Status),
		"leases list":                          new(adminapi.LeaseList),
		"leases inspect":                       new(adminapi.LeaseDetail),
		"leases watch":                         new(watchLine),
		"queue list":                           new(adminapi.WaiterList),
		"queue cancel":                         new(adminapi.CanceledWaiter),
		"queue watch":                          new(watchLine),
		"requests list":                        new(requestList),
		"requests explain":                     new(adminapi.Request),
		"requests explain (without a request)": new(waiting),
		"usage":                                new(adminapi.UsageReport),
		"providers list":                       new(adminapi.ProviderList),
		"providers show":                       new(adminapi.ProviderDetail),
		"providers drain":                      new(drained), "providers undrain": new(drained),
		"nodes list": new(adminapi.NodeList), "nodes show": new(nodeDetail),
		"nodes add": new(added), "nodes token": new(joinLines),
		"nodes drain": new(drained), "nodes undrain": new(drained),
		"models list": new(adminapi.ModelList), "models show": new(modelDetail),
		"refresh":                          new(adminapi.RefreshReport),
		"config validate":                  new(verdicts),
		"config show":                      new(adminapi.Config),
		"config diff":                      new(adminapi.RefreshReport),
		"config history":                   new(adminapi.ConfigHistory),
		"config history (with a revision)": new(adminapi.ConfigRevision),
		"tokens new":                       new(token), "tokens hash": new(token),
		"certs init": new(certMade), "certs edge": new(certMade), "certs node": new(certMade), "certs show": new(certList),
		"cluster members": new(adminapi.Cluster), "cluster add": new(adminapi.Cluster), "cluster remove": new(adminapi.Cluster),
		"cluster replace": new(adminapi.Cluster), "cluster transfer": new(adminapi.Cluster),
		"cluster verify":  new(adminapi.Verification),
		"cluster restore": new(rebuilt), "cluster recover": new(rebuilt),
		"debug check": new(checkReport), "debug diff": new(logDiff), "debug log": new(logLine), "debug story": new(adminapi.Story),
		"version": new(build),
	}
}

// shapeless are the commands that print something else, and what.
func shapeless() map[string]string {
	return map[string]string{
		"top":            "a live view; with a pipe see 'iopctl status'",
		"dev":            "a welcome, then the log",
		"config schema":  "a JSON Schema",
		"cluster backup": "one line; -o names the file",
		"debug bundle":   "one line; -o names the file",
	}
}

// A command that prints JSON has a shape that is documented; none can be forgotten.
func TestEveryCommandHasAShape(t *testing.T) {
	paths := Leaves()
	for _, path := range paths {
		_, none := shapeless()[path]
		if _, ok := jsonShapes()[path]; ok == none {
			t.Errorf("iopctl %s: it has to be in jsonShapes() or in shapeless(), and not in both", path)
		}
	}
	for path := range jsonShapes() {
		if path, _, _ = strings.Cut(path, " ("); !slices.Contains(paths, path) {
			t.Errorf("there is no iopctl %s any more", path)
		}
	}
}
