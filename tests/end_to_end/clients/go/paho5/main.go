// Eclipse Paho's client of MQTT 5 in Go, which publishes and subscribes at once.
package main

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
	"github.com/eclipse/paho.golang/paho/session"
	"github.com/eclipse/paho.golang/paho/session/state"

	"rfhbridge/clients/given"
)

// patience is far above what any step takes.
const patience = time.Minute

// watched is the client's own session, which tells what was acknowledged: a message of the client's queue has no answer.
type watched struct {
	*state.State
	acknowledged chan<- int
}

// AddToSession gives the session a channel of ours for the answer to a PUBLISH.
func (own watched) AddToSession(ctx context.Context, packet session.Packet, answer chan<- packets.ControlPacket) error {
	publish, isPublish := packet.(*packets.Publish)
	if !isPublish {
		return own.State.AddToSession(ctx, packet, answer)
	}
	ours := make(chan packets.ControlPacket, 1)
	go func() {
		got := <-ours
		if got.Type != packets.PUBACK && got.Type != packets.PUBCOMP {
			given.Fail(fmt.Errorf("%s was answered with packet type %d", publish.Payload, got.Type))
		}
		if string(publish.Payload) != given.Last {
			number, err := strconv.Atoi(string(publish.Payload))
			given.Fail(err)
			own.acknowledged <- number
		}
		answer <- got
	}()
	return own.State.AddToSession(ctx, packet, ours)
}

func connect(
	ctx context.Context, asked given.Given, role string, own session.SessionManager,
	take ...func(paho.PublishReceived) (bool, error),
) *autopaho.ConnectionManager {
	manager, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{
		ServerUrls:                    []*url.URL{asked.Address},
		TlsCfg:                        asked.TLS(),
		KeepAlive:                     60,
		CleanStartOnInitialConnection: true,
		OnConnectError:                given.Fail,
		ClientConfig: paho.ClientConfig{
			ClientID:           asked.Name + "-" + role,
			Session:            own,
			OnPublishReceived:  take,
			OnClientError:      given.Fail,
			OnServerDisconnect: func(told *paho.Disconnect) { given.Fail(fmt.Errorf("reason %d", told.ReasonCode)) },
		},
	})
	given.Fail(err)
	given.Fail(manager.AwaitConnection(ctx))
	return manager
}

func main() {
	asked := given.Read()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ended := make(chan struct{})
	take := func(received paho.PublishReceived) (bool, error) {
		if given.Received(received.Packet.Payload, received.Packet.QoS) {
			close(ended)
		}
		return true, nil
	}
	watcher := connect(ctx, asked, "watcher", state.NewInMemory(), take)
	_, err := watcher.Subscribe(ctx, &paho.Subscribe{
		Subscriptions: []paho.SubscribeOptions{{Topic: asked.Name + "/#", QoS: 2}},
	})
	given.Fail(err)
	publish(ctx, asked)
	<-ended
}

// publish sends through the client's queue, from which it publishes without waiting for the answers.
func publish(ctx context.Context, asked given.Given) {
	acknowledged := make(chan int, asked.Count)
	publisher := connect(ctx, asked, "publisher", watched{State: state.NewInMemory(), acknowledged: acknowledged})
	send := func(topic string, qos byte, payload string) {
		message := &paho.Publish{Topic: topic, QoS: qos, Payload: []byte(payload)}
		given.Fail(publisher.PublishViaQueue(ctx, &autopaho.QueuePublish{Publish: message}))
	}
	for number := range asked.Count {
		send(asked.Topic(number), asked.QoS(number), strconv.Itoa(number))
		if asked.QoS(number) == 0 {
			acknowledged <- number
		}
	}
	for range asked.Count {
		given.Acknowledged(<-acknowledged)
	}
	send(asked.Name+"/end", 2, given.Last)
}
