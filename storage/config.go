package storage

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"iop/fsm"
	"iop/proto/recordpb"
)

// marshal encodes a record; the records of this package hold nothing that could fail (names are bytes).
func marshal(m proto.Message) []byte {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("storage: encode %T: %v", m, err))
	}
	return b
}

// unmarshal decodes a record and refuses fields that this version does not know.
func unmarshal(b []byte, m proto.Message) error {
	if err := proto.Unmarshal(b, m); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return refuseUnknown(m.ProtoReflect())
}

func refuseUnknown(m protoreflect.Message) error {
	if len(m.GetUnknown()) > 0 {
		return fmt.Errorf("%w: unknown field in %s", ErrNewer, m.Descriptor().Name())
	}
	var err error
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				err = refuseUnknown(v.List().Get(i).Message())
			}
		default:
			err = refuseUnknown(v.Message())
		}
		return err == nil
	})
	return err
}

func marshalConfig(c *fsm.Config) []byte { return marshal(configRecord(c)) }

func unmarshalConfig(b []byte) (fsm.Config, error) {
	var m recordpb.Config
	if err := unmarshal(b, &m); err != nil {
		return fsm.Config{}, fmt.Errorf("configuration: %w", err)
	}
	return configOf(&m)
}

func configRecord(c *fsm.Config) *recordpb.Config {
	m := &recordpb.Config{}
	if c.Pool != (fsm.Pool{}) {
		m.Pool = &recordpb.Config_Pool{
			MaxQueue: int64(c.Pool.MaxQueue), QueueTimeout: int64(c.Pool.QueueTimeout),
			StartupGrace: int64(c.Pool.StartupGrace), ReattachWindow: int64(c.Pool.ReattachWindow),
			FenceTimeout: int64(c.Pool.FenceTimeout), Fair: c.Pool.Fair,
			ResponsesBytes: c.Pool.ResponsesBytes, ResponsesRetention: int64(c.Pool.ResponsesRetention),
		}
	}
	for _, model := range c.Models {
		mm := &recordpb.Config_Model{Id: []byte(model.ID)}
		for _, can := range model.Candidates {
			mm.Candidates = append(mm.Candidates, &recordpb.Config_Candidate{
				Provider: []byte(can.Provider), Served: []byte(can.Served),
			})
		}
		m.Models = append(m.Models, mm)
	}
	for _, n := range c.Nodes {
		m.Nodes = append(m.Nodes, []byte(n))
	}
	for i := range c.Providers {
		m.Providers = append(m.Providers, providerRecord(&c.Providers[i]))
	}
	for i := range c.Principals {
		p := &c.Principals[i]
		mp := &recordpb.Config_Principal{Id: []byte(p.ID), MaxInFlight: int64(p.MaxInFlight), MaxQueued: int64(p.MaxQueued)}
		for _, id := range p.Models {
			mp.Models = append(mp.Models, []byte(id))
		}
		m.Principals = append(m.Principals, mp)
	}
	return m
}

func providerRecord(p *fsm.ProviderConfig) *recordpb.Config_Provider {
	return &recordpb.Config_Provider{
		Id: []byte(p.ID), Node: []byte(p.Node), Capacity: int64(p.Capacity), LongCapacity: int64(p.LongCapacity),
		ContextWindow: p.ContextWindow, Priority: int64(p.Priority), Enabled: p.Enabled, Can: uint32(p.Can),
	}
}

func configOf(m *recordpb.Config) (fsm.Config, error) {
	var c fsm.Config
	var w narrow
	if p := m.GetPool(); p != nil {
		c.Pool = fsm.Pool{
			MaxQueue: w.int(p.GetMaxQueue()), QueueTimeout: fsm.Time(p.GetQueueTimeout()),
			StartupGrace: fsm.Time(p.GetStartupGrace()), ReattachWindow: fsm.Time(p.GetReattachWindow()),
			FenceTimeout: fsm.Time(p.GetFenceTimeout()), Fair: p.GetFair(),
			ResponsesBytes: p.GetResponsesBytes(), ResponsesRetention: fsm.Time(p.GetResponsesRetention()),
		}
	}
	for _, mm := range m.GetModels() {
		model := fsm.ModelConfig{ID: fsm.ModelID(mm.GetId())}
		for _, can := range mm.GetCandidates() {
			model.Candidates = append(model.Candidates, fsm.Candidate{
				Provider: fsm.ProviderID(can.GetProvider()), Served: string(can.GetServed()),
			})
		}
		c.Models = append(c.Models, model)
	}
	for _, n := range m.GetNodes() {
		c.Nodes = append(c.Nodes, fsm.NodeID(n))
	}
	for _, p := range m.GetProviders() {
		c.Providers = append(c.Providers, w.provider(p))
	}
	for _, p := range m.GetPrincipals() {
		pc := fsm.PrincipalConfig{
			ID: fsm.PrincipalID(p.GetId()), MaxInFlight: w.int(p.GetMaxInFlight()), MaxQueued: w.int(p.GetMaxQueued()),
		}
		for _, id := range p.GetModels() {
			pc.Models = append(pc.Models, fsm.ModelID(id))
		}
		c.Principals = append(c.Principals, pc)
	}
	return c, w.err
}

// narrow turns record numbers into the machine's types; err is set if one does not fit.
type narrow struct{ err error }

func (w *narrow) provider(p *recordpb.Config_Provider) fsm.ProviderConfig {
	return fsm.ProviderConfig{
		ID: fsm.ProviderID(p.GetId()), Node: fsm.NodeID(p.GetNode()), Capacity: w.int(p.GetCapacity()),
		LongCapacity: w.int(p.GetLongCapacity()), ContextWindow: p.GetContextWindow(),
		Priority: w.int(p.GetPriority()), Enabled: p.GetEnabled(), Can: fsm.Needs(p.GetCan()),
	}
}

func (w *narrow) int(v int64) int {
	if int64(int(v)) != v { // only where int has 32 bits
		w.err = fmt.Errorf("number %d does not fit", v)
		return 0
	}
	return int(v)
}

func (w *narrow) byte(v uint32) uint8 {
	if v > math.MaxUint8 {
		w.err = fmt.Errorf("number %d is not known", v)
		return 0
	}
	return uint8(v)
}
