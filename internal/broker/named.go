package broker

import (
	"context"
	"errors"
)

// MessageByName looks at the message that waits, or waited last, under a name
// in a topic. ErrUnknown: none waits under it, as far as is remembered.
func (b *Broker) MessageByName(ctx context.Context, topic, name string) (View, error) {
	return View{}, errors.ErrUnsupported
}
