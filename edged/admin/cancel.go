package admin

import (
	"fmt"
	"net/http"

	"iop/edged/adminapi"
	"iop/fsm"
)

// cancelWaiter takes a waiter out of the queue. What runs is not touched.
func (a *api) cancelWaiter(r *http.Request) (any, error) {
	id := r.PathValue("id")
	out, err := a.Evict(r.Context(), fsm.RequestID(id))
	switch {
	case err != nil:
		return nil, err
	case out.Code == fsm.Removed:
		a.changed(r, "queue cancel", "request", id)
		return &adminapi.CanceledWaiter{Request: id}, nil
	case out.Code == fsm.Holds:
		return nil, &adminapi.Error{
			Code:    "not_waiting",
			Message: fmt.Sprintf("request %s does not wait: it has lease %d of provider %s", id, out.Grant.Lease, out.Grant.Provider),
			Cure:    "only what waits can be cancelled here; what runs ends when its client leaves",
			Status:  http.StatusConflict,
		}
	}
	return nil, gone("waiting request", id, "/queue (iopctl queue list)")
}
