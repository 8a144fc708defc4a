// Eclipse Paho's client of MQTT 3.1 and 3.1.1 in Go, which publishes and subscribes at once.
package main

import (
	"strconv"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"rfhbridge/clients/given"
)

var levels = map[string]uint{"3.1": 3, "3.1.1": 4}

func connect(asked given.Given, role string) mqtt.Client {
	options := mqtt.NewClientOptions().
		AddBroker(asked.Address.String()).
		SetClientID(asked.Name + "-" + role).
		SetProtocolVersion(levels[asked.Version]).
		SetTLSConfig(asked.TLS()).
		SetAutoReconnect(false).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) { given.Fail(err) })
	client := mqtt.NewClient(options)
	wait(client.Connect())
	return client
}

func wait(token mqtt.Token) {
	token.Wait()
	given.Fail(token.Error())
}

func main() {
	asked := given.Read()
	ended := make(chan struct{})
	watcher := connect(asked, "watcher")
	wait(watcher.Subscribe(asked.Name+"/#", 2, func(_ mqtt.Client, message mqtt.Message) {
		if given.Received(message.Payload(), message.Qos()) {
			close(ended)
		}
	}))
	publisher := connect(asked, "publisher")
	tokens := make([]mqtt.Token, asked.Count)
	for number := range tokens {
		tokens[number] = publisher.Publish(asked.Topic(number), asked.QoS(number), false, strconv.Itoa(number))
	}
	for number, token := range tokens {
		wait(token)
		given.Acknowledged(number)
	}
	wait(publisher.Publish(asked.Name+"/end", 2, false, given.Last))
	<-ended
}
