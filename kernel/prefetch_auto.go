package kernel

import "context"

type searchRecord struct{}

func (s *searchRecord) on() bool { return true }

func (r *run) readSearchRecord(context.Context) {}
