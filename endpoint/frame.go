package endpoint

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// frame is a message that is passed on as it is.
type frame struct{ data []byte }

// frames is the codec of both sides: nothing is decoded. A message is copied
// once, so that it can be sent again and belongs to nobody's pool.
type frames struct{}

func (frames) Name() string { return "proto" }

func (frames) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("endpoint: a message of type %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(f.data)}, nil
}

func (frames) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("endpoint: a message of type %T", v)
	}
	f.data = data.Materialize()
	return nil
}
