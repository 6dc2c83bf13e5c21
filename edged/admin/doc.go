// Package admin is the admin listener's HTTP: what operators see.
//
// Each answer is computed from the machine at one log index, inside one View, so its numbers can't disagree with each
// other or with what admission decides. It changes nothing and holds nothing: a client that reads slowly, or never, costs
// a goroutine of its own and nothing else. edged mounts it on the admin listener; the shapes are those of edged/adminapi.
//
// Where next: admin.go (New and the routes), guard.go (who may ask), show.go (from the machine to the shapes), watch.go.
package admin
