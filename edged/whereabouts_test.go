package edged

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"iop/configs"
	"iop/fsm"
	"iop/storage"
)

// An edge announces its address when the state can have it, once, and tells the nodes of the members' alone.
func TestAddressIsAnnouncedAtItsLevel(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	store, err := storage.Open(ctx, storage.Options{Dir: t.TempDir(), Replica: "edge-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(context.WithoutCancel(ctx)) }()
	d := &Daemon{
		store: store, log: slog.New(slog.DiscardHandler),
		self: &configs.Self{ID: "edge-1", Advertise: configs.Advertise{Node: "one.example:8081"}},
	}
	d.tenure = newTenure(store, "edge-1", d.log, nil)
	if _, err := d.tenure.open(ctx); err != nil {
		t.Fatal(err)
	}
	left, err := store.OpenSession(ctx, "edge-9", nil) // no member
	if err != nil {
		t.Fatal(err)
	}
	d.announceAddress(ctx)
	if list, _ := (whereabouts{store}).Edges(); len(list) != 0 {
		t.Error("announced below its level:", list)
	}
	if _, err := store.Do(ctx, &fsm.RaiseLevel{Level: fsm.LevelOf(&fsm.Announce{})}); err != nil {
		t.Fatal(err)
	}
	if _, err := left.Do(ctx, &fsm.Announce{Address: "nine.example:8081"}); err != nil {
		t.Fatal(err)
	}
	d.announceAddress(ctx)
	list, index := (whereabouts{store}).Edges()
	if len(list) != 1 || list["edge-1"] != "one.example:8081" || index == 0 {
		t.Errorf("%v at %d", list, index)
	}
	d.announceAddress(ctx)
	if _, again := (whereabouts{store}).Edges(); again != index {
		t.Error("it announces what is known")
	}
}
